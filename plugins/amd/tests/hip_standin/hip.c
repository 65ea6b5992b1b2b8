/* A stand-in for the HIP runtime library: the prototypes of hip_runtime_api.h, each of which asks runtime.py. */

#include "calls.h"

int hipInit(unsigned flags) { PASS(W(flags)); }
int hipRuntimeGetVersion(int *version) { PASS(W(version)); }
int hipGetLastError(void) { PASS(0); }
int hipGetDeviceCount(int *count) { PASS(W(count)); }
int hipGetDevice(int *device) { PASS(W(device)); }
int hipSetDevice(int device) { PASS(W(device)); }
int hipDeviceGetName(char *name, int length, int device) { PASS(W(name), W(length), W(device)); }
int hipDeviceTotalMem(size_t *bytes, int device) { PASS(W(bytes), W(device)); }
int hipDeviceSynchronize(void) { PASS(0); }
int hipDeviceCanAccessPeer(int *can, int device, int peer) { PASS(W(can), W(device), W(peer)); }
int hipDeviceEnablePeerAccess(int peer, unsigned flags) { PASS(W(peer), W(flags)); }
int hipMalloc(void **pointer, size_t size) { PASS(W(pointer), W(size)); }
int hipFree(void *pointer) { PASS(W(pointer)); }
int hipMemGetInfo(size_t *free, size_t *total) { PASS(W(free), W(total)); }
int hipMemcpy(void *to, const void *from, size_t size, int kind) { PASS(W(to), W(from), W(size), W(kind)); }
int hipMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    PASS(W(to), W(from), W(size), W(kind), W(stream));
}
int hipPointerGetAttributes(void *attributes, const void *pointer) { PASS(W(attributes), W(pointer)); }
int hipModuleLoadData(void **module, const void *image) { PASS(W(module), W(image)); }
int hipModuleUnload(void *module) { PASS(W(module)); }
int hipModuleGetFunction(void **function, void *module, const char *name) { PASS(W(function), W(module), W(name)); }
int hipModuleLaunchKernel(
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
    void **parameters, void **extra) {
    PASS(W(function), W(gx), W(gy), W(gz), W(bx), W(by), W(bz), W(shared), W(stream), W(parameters), W(extra));
}
int hipStreamCreateWithFlags(void **stream, unsigned flags) { PASS(W(stream), W(flags)); }
int hipStreamDestroy(void *stream) { PASS(W(stream)); }
int hipStreamSynchronize(void *stream) { PASS(W(stream)); }
int hipStreamWaitEvent(void *stream, void *event, unsigned flags) { PASS(W(stream), W(event), W(flags)); }
int hipEventCreateWithFlags(void **event, unsigned flags) { PASS(W(event), W(flags)); }
int hipEventDestroy(void *event) { PASS(W(event)); }
int hipEventRecord(void *event, void *stream) { PASS(W(event), W(stream)); }
int hipEventQuery(void *event) { PASS(W(event)); }
int hipEventSynchronize(void *event) { PASS(W(event)); }
#ifndef WITHOUT_TIMES
int hipEventElapsedTime(float *milliseconds, void *start, void *end) { PASS(W(milliseconds), W(start), W(end)); }
#endif
#ifndef BEFORE_6_0
int hipGetDevicePropertiesR0600(void *properties, int device) { PASS(W(properties), W(device)); }
#endif
const char *hipGetErrorName(int status) { return text("hipGetErrorName", status); }
const char *hipGetErrorString(int status) { return text("hipGetErrorString", status); }
