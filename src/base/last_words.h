/* last_words.h - reports an abort for which a library gives no reason.
 *
 * libuv, for example, aborts without a message if it cannot start a thread. */
#pragma once

/* Call it once, at the start of the program. */
void last_words_init(void);

/* Call it before an abort whose reason was written: nothing is added to it. */
void last_words_given(void);
