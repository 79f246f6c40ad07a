#pragma once
/// Functions that nvcc makes for the device too; other compilers see plain functions.

#ifdef __CUDACC__
#define INFEED_ANYWHERE __host__ __device__
#define INFEED_LANE __device__
#else
#define INFEED_ANYWHERE
#define INFEED_LANE
#endif
