/* list.h - an intrusive doubly linked list.
 *
 * The head and the links have the same type. A link's comment names the list that it is
 * for:
 *
 *     struct list link; // server::connections */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* The body may remove the current link, but no other. */
#define list_each(pos, head)                                                               \
    for (struct list *pos = (head)->next, *pos##_next = pos->next; pos != (head);          \
         pos = pos##_next, pos##_next = pos->next)

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_append(struct list *head, struct list *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

/* Moves every link to the end of head; from is empty afterwards. */
static inline void list_move_all(struct list *head, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = head->prev;
    from->prev->next = head;
    head->prev->next = from->next;
    head->prev = from->prev;
    list_init(from);
}

/* Leaves the link initialized, so removing it twice is harmless. */
static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

/* Removes and returns the first link; the list must not be empty. */
static inline struct list *list_take(struct list *head)
{
    struct list *link = head->next;
    list_remove(link);
    return link;
}
