// SPDX-License-Identifier: Apache-2.0
// One error for each tool of compute-sanitizer to find, so that a tool that finds nothing elsewhere is known to look.
//
// usage: planted memcheck|racecheck|initcheck
#include <cstdio>
#include <cstring>

enum { N = 64 };

extern "C" __global__ void planted_write(float *a)
{
    a[threadIdx.x + 1024 * 1024] = 1.0f; // behind the end
}

extern "C" __global__ void planted_race(float *a)
{
    __shared__ float shared[N];
    shared[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = shared[(threadIdx.x + 33) % N]; // of another warp, without a barrier
}

extern "C" __global__ void planted_read(float *a)
{
    a[threadIdx.x] += 1.0f; // nobody wrote it
}

int main(int argc, char **argv)
{
    float *a = nullptr;
    const char *tool = argc == 2 ? argv[1] : "";
    if (cudaMalloc(&a, N * sizeof *a) != cudaSuccess) {
        return 2;
    }
    if (strcmp(tool, "memcheck") == 0) {
        planted_write<<<1, N>>>(a);
    } else if (strcmp(tool, "racecheck") == 0) {
        (void)cudaMemset(a, 0, N * sizeof *a);
        planted_race<<<1, N>>>(a);
    } else if (strcmp(tool, "initcheck") == 0) {
        planted_read<<<1, N>>>(a);
    } else {
        (void)fputs("usage: planted memcheck|racecheck|initcheck\n", stderr);
        return 2;
    }
    (void)printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
