/* notice_calls.h - the call that opens a socket for notices. */
#pragma once

struct api_call;

/* The exchange of the call becomes a socket, or is refused by the rules of the handshake: the
 * call ends either way. */
void run_notifications_accept(struct api_call *call);
