/* A stand-in for the HIP runtime library: the prototypes of hip_runtime_api.h, each of which passes its arguments on to the server
   of runtime.py over the Unix socket that STANDIN_SOCKET names. The server answers with requests to read and write this process's
   memory, and at last with the status. Without a server there is no card. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NO_DEVICE = 100, UNKNOWN = 999 };
enum { DONE, READ, WRITE, STRING };

struct request {
    char name[40];
    uint64_t thread, count, words[12];
};
struct reply {
    uint64_t kind, address, length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int server = -1;
static int gone; /* the test is over: what still calls finds no runtime, and least of all that of the next test */

static int connected(void) {
    const char *path = getenv("STANDIN_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (server >= 0) return 1;
    if (gone || !path || strlen(path) >= sizeof address.sun_path) return 0;
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (server >= 0 && !connect(server, (struct sockaddr *)&address, sizeof address)) return 1;
    if (server >= 0) close(server);
    server = -1;
    return 0;
}

static int put(const void *data, size_t size) {
    for (const char *at = data; size;) {
        ssize_t done = write(server, at, size);
        if (done <= 0) return 0;
        at += done, size -= (size_t)done;
    }
    return 1;
}

static int get(void *data, size_t size) {
    for (char *at = data; size;) {
        ssize_t done = read(server, at, size);
        if (done <= 0) return 0;
        at += done, size -= (size_t)done;
    }
    return 1;
}

static int served(const struct request *request) {
    struct reply reply;
    if (!put(request, sizeof *request)) return UNKNOWN;
    while (get(&reply, sizeof reply)) {
        void *place = (void *)(uintptr_t)reply.address;
        uint64_t length;
        switch (reply.kind) {
        case READ:
            if (!put(place, reply.length)) return UNKNOWN;
            break;
        case WRITE:
            if (!get(place, reply.length)) return UNKNOWN;
            break;
        case STRING:
            length = strlen(place);
            if (!put(&length, sizeof length) || !put(place, length)) return UNKNOWN;
            break;
        default:
            return (int)reply.address;
        }
    }
    return UNKNOWN;
}

static int call(const char *name, size_t count, const uint64_t *words) {
    struct request request = {.thread = (uint64_t)pthread_self(), .count = count};
    int status = NO_DEVICE;
    strncpy(request.name, name, sizeof request.name - 1);
    memcpy(request.words, words, count * sizeof *words);
    pthread_mutex_lock(&lock);
    if (connected()) status = served(&request);
    pthread_mutex_unlock(&lock);
    return status;
}

/* For the test alone: end the connection, for good. */
void standinDisconnect(void) {
    pthread_mutex_lock(&lock);
    if (server >= 0) close(server);
    server = -1, gone = 1;
    pthread_mutex_unlock(&lock);
}

#define W(value) ((uint64_t)(value))
#define PASS(...) \
    const uint64_t words[] = {__VA_ARGS__}; \
    return call(__func__, sizeof words / sizeof *words, words)

/* A text lives as long as the process, as those of the library do. */
static const char *text(const char *name, int status) {
    char *found = calloc(1, 256);
    const uint64_t words[] = {W(found), W(status)};
    return found && !call(name, 2, words) ? found : "unknown";
}

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
