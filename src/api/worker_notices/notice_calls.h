/* notice_calls.h - the call that opens a socket for notices. */
#pragma once

struct api_call;

/* Turns the call's exchange into a socket, unless the handshake is invalid. The call ends
 * either way. */
void run_notifications_accept(struct api_call *call);
