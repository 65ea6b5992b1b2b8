/* What a stand-in for a driver library is made of: each of its functions passes its arguments on (PASS) to the server of server.py
   over the Unix socket that STANDIN_SOCKET names. The server answers with requests to read and write this process's memory, and at
   last with the status. Without a server there is no card. */

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
