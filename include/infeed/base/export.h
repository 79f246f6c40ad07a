#pragma once
/// INFEED_API marks what libinfeed.so exports; everything else stays hidden.

#define INFEED_API __attribute__((visibility("default")))
