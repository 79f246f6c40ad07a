// Carries the precompiled header of the layers; see CMakeLists.txt.
