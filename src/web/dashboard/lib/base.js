// base.js - the path prefix under which a proxy shows the gateway: "" at the root of a host, or "/jobs".
//
// The gateway serves this program as PREFIX/dashboard/app.js.
export const base = new URL("..", import.meta.url).pathname.replace(/\/+$/, "");

/** The address of the gateway, as clients use it. */
export const gatewayUrl = location.origin + base;
