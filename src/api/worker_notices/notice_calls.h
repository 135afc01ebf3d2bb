/* notice_calls.h - the call that opens a socket for notices. */
#pragma once

struct api_call;

/* Turns the exchange of the call into a socket, unless the handshake's rules refuse it. The
 * call ends either way. */
void run_notifications_accept(struct api_call *call);
