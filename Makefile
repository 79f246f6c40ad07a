# The commands of every day. Each installs what is missing first; see .ci/ for the steps.
.PHONY: demo test sanitize build bench lint

demo:     ; @.ci/setup demo && .ci/build demo && build/release/examples/demo/infeed-demo --out build/demo.json
test:     ; @.ci/setup test && .ci/build test && .ci/test
sanitize: ; @.ci/setup sanitize && .ci/build sanitize && .ci/test sanitize
build:    ; @.ci/setup test && .ci/build
bench:    ; @.ci/setup test && .ci/build bench && .ci/bench
lint:     ; @.ci/setup lint && .ci/build && .ci/lint
