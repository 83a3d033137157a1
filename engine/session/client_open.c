// SPDX-License-Identifier: Apache-2.0
// How a session with another process begins: a worker of ours is spawned and told what to train, one that lets itself
// be watched is connected to.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "session/client_impl.h"
#include "session/end.h"

static hr_status send_open(client_session *c, const open_request *request, hr_err *err)
{
    wire_out body = {0};
    put_open(&body, request);
    bool sent = !body.bad && wire_write(c->wire, MESSAGE_OPEN, body.data, (uint32_t)body.bytes, -1);
    wire_out_deinit(&body);
    return sent ? HR_OK : HR_FAIL(err, STATE, "the worker took no word");
}

static hr_status make_client(const session_ops *ops, client_session **out, hr_err *err)
{
    client_session *c = hr_calloc(1, sizeof *c);
    *out = NULL;
    if (c == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a session");
    }
    hr_status status = session_open(&c->base, ops, true, err);
    if (status != HR_OK) {
        hr_free(c);
        return status;
    }
    *out = c;
    return HR_OK;
}

static void free_client(client_session *c)
{
    client_close(c);
    session_close(&c->base);
    hr_free(c);
}

static hr_status spawn_worker(client_session *c, const open_request *request, hr_err *err)
{
    c->kernel_kills = end_kernel_kills();
    HR_TRY(child_spawn(&(child_order){.role = "worker"}, &c->child, err));
    c->owns = true;
    int socket = c->child.socket;
    c->child.socket = -1;
    HR_TRY(wire_create(socket, MESSAGE_KINDS, &c->wire, err));
    if (!session_watch_fd(&c->base, socket, EPOLLIN) ||
        (c->child.pidfd >= 0 && !session_watch_fd(&c->base, c->child.pidfd, EPOLLIN)) ||
        !session_watch_fd(&c->base, c->child.errors, EPOLLIN)) {
        return HR_FAIL(err, STATE, "the worker's descriptors cannot be waited for: %s", strerror(errno));
    }
    if (request->watchable && !watch_path(c->child.pid, c->socket_path)) {
        c->socket_path[0] = '\0';
    }
    (void)text_copy(c->autosave_path, sizeof c->autosave_path, request->autosave_path);
    session_set_about(&c->base, request->preset, &request->knobs);
    return send_open(c, request, err);
}

static hr_status copy_path(char to[MESSAGE_PATH_MAX], const char *from, hr_err *err)
{
    return text_copy(to, MESSAGE_PATH_MAX, from != NULL ? from : "")
               ? HR_OK
               : HR_FAIL(err, USAGE, "%.64s…: needed a path of at most %d bytes", from, MESSAGE_PATH_MAX - 1);
}

hr_status session_request(const hr_session_options *options, open_request *request, hr_err *err)
{
    request->trusts = options->trusts;
    request->watchable = options->watchable;
    request->knobs = *options->knobs;
    HR_TRY(copy_path(request->preset, options->preset, err));
    HR_TRY(copy_path(request->resume_path, options->resume_path, err));
    HR_TRY(copy_path(request->autosave_path, options->autosave_path, err));
    return hr_knobs_validate(options->knobs, err);
}

hr_status hr_session_start(const hr_session_options *options, hr_session **out, hr_err *err)
{
    client_session *c = NULL;
    *out = NULL;
    open_request *request = hr_calloc(1, sizeof *request);
    if (request == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a session");
    }
    hr_status status = session_request(options, request, err);
    status = status == HR_OK ? make_client(&client_own_worker, &c, err) : status;
    if (c != NULL) {
        status = spawn_worker(c, request, err);
        if (status != HR_OK) {
            free_client(c);
        }
    }
    hr_free(request);
    *out = status == HR_OK && c != NULL ? &c->base : NULL;
    return status;
}

hr_status client_watch(const char *path, hr_session **out, hr_err *err)
{
    client_session *c = NULL;
    int socket = -1;
    HR_TRY(watch_connect(path, &socket, err));
    hr_status status = make_client(&client_watched, &c, err);
    if (status != HR_OK) {
        (void)close(socket);
        return status;
    }
    status = wire_create(socket, MESSAGE_KINDS, &c->wire, err);
    if (status == HR_OK && !session_watch_fd(&c->base, socket, EPOLLIN)) {
        status = HR_FAIL(err, STATE, "%s cannot be waited for: %s", path, strerror(errno));
    }
    if (status != HR_OK) {
        free_client(c);
        return status;
    }
    *out = &c->base;
    return HR_OK;
}
