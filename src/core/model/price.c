/* price.c - reads prices from text. */
#include "core/model/price.h"

#include "base/json/scan.h"

bool price_read(struct slice text, double *cents)
{
    double read;
    if (!scan_is_json(text) || scan_type(text) != SCAN_NUMBER ||
        !scan_number(text, &read) || !(read >= 0 && read <= (double)PRICE_MAX))
        return false;
    *cents = read;
    return true;
}

/* Reads the price of one machine. seen has a bit for each machine named so far: a second
 * price is an error, because one of the two would be ignored. */
static bool read_machine(struct slice text, struct prices *prices, uint32_t *seen)
{
    struct slice name;
    enum machine machine;
    if (!slice_split(&text, '=', &name) || machine_from_name(slice_trim(name), &machine) ||
        *seen & 1u << machine)
        return false;
    *seen |= 1u << machine;
    return price_read(slice_trim(text), &prices->per_second[machine]);
}

bool prices_read_machines(struct slice list, struct prices *prices)
{
    struct prices read = *prices;
    struct slice one;
    uint32_t seen = 0;
    list = slice_trim(list);
    if (!list.len)
        return true;
    if (slice_is(list, "0")) {
        memset(prices->per_second, 0, sizeof(prices->per_second));
        return true;
    }
    while (slice_split(&list, ',', &one))
        if (!read_machine(one, &read, &seen))
            return false;
    *prices = read;
    return true;
}
