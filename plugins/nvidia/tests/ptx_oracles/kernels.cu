// Kernels in CUDA C that nvcc turns into PTX unlike Triton's: local memory, votes, divergent loops, static shared memory, calls.

extern "C" __global__ void scaled_sum(int n, float a, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void block_sum(const int *x, int *total, int n) {
    __shared__ int partial[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = i < n ? x[i] : 0;
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        if (threadIdx.x == 0) atomicAdd(total, sum);
    }
}

extern "C" __global__ void tile_transpose(const float *x, float *y, int rows, int columns) {
    __shared__ float tile[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = x[row * columns + column];
    __syncthreads();
    column = blockIdx.y * 16 + threadIdx.x;
    row = blockIdx.x * 16 + threadIdx.y;
    if (row < columns && column < rows) y[row * rows + column] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void greatest_divisor(const unsigned *x, const unsigned *y, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = x[i], b = y[i];
    while (b != 0) { unsigned r = a % b; a = b; b = r; }
    out[i] = a;
}

extern "C" __global__ void digit_counts(const unsigned *x, int *most_common, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int counts[10];
    for (int d = 0; d < 10; d++) counts[d] = 0;
    for (unsigned v = x[i]; v != 0; v /= 10) counts[v % 10]++;
    int best = 0;
    for (int d = 1; d < 10; d++) if (counts[d] > counts[best]) best = d;
    most_common[i] = best;
}

extern "C" __global__ void compact_positive(const int *x, int *out, int n) {
    // One warp: each lane with a positive number writes it behind those of lower lanes.
    unsigned lane = threadIdx.x, base = 0;
    for (int start = 0; start < n; start += 32) {
        int v = start + (int)lane < n ? x[start + lane] : 0;
        unsigned votes = __ballot_sync(0xffffffffu, v > 0);
        if (v > 0) out[base + __popc(votes & ((1u << lane) - 1))] = v;
        base += __popc(votes);
    }
}

#ifdef CALLS
__device__ __noinline__ int ackermann_row(int m, int n) { return n <= 0 ? m + 1 : ackermann_row(m, n - 1) + m; }

extern "C" __global__ void recursive(const int *x, int *out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = ackermann_row(x[i] % 5, x[i] % 7);
}
#endif
