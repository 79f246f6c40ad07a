# The commands of every day. Each installs what is missing first; see .ci/ for the steps.
.PHONY: demo test test-quick sanitize build bench lint

demo:       ; @.ci/setup demo && .ci/build demo && build/release/examples/demo/infeed-demo --out build/demo.json
test:       ; @.ci/setup test && .ci/build && .ci/test release && .ci/build sanitize && .ci/test sanitize
test-quick: ; @.ci/setup release && .ci/build && .ci/test release
sanitize:   ; @.ci/setup sanitize && .ci/build sanitize && .ci/test sanitize
build:      ; @.ci/setup release && .ci/build
bench:      ; @.ci/setup release && .ci/build bench && .ci/bench
lint:       ; @.ci/setup lint && .ci/build configure && .ci/lint
