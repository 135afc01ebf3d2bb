// The client for pages is served as it is in the source, compressed, to any page, and can be cached for a while.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { startGateway } from "../support/js/gateway.mjs";

const files = { "/client.js": "client.js", "/client/react.js": "react.js" };
let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const written = (name) => readFileSync(new URL(`../../src/web/client/${name}`, import.meta.url));
/** Node's fetch decompresses; this does not. */
const ask = async (path, headers) => {
  const raw = await gateway.connect();
  const lines = Object.entries({ host: "x", connection: "close", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  await raw.send(`GET ${path} HTTP/1.1\r\n${lines}\r\n`);
  await raw.readToEnd();
  const bytes = raw.take(), end = bytes.indexOf("\r\n\r\n");
  const [status, ...rest] = bytes.subarray(0, end).toString().split("\r\n");
  return { status: Number(status.split(" ")[1]), headers: new Map(rest.map((line) => line.split(": "))), body: bytes.subarray(end + 4) };
};

for (const [path, name] of Object.entries(files)) {
  test(`${path} is ${name}, under 6 KB when it is compressed`, async (t) => {
    const plain = await ask(path), packed = await ask(path, { "accept-encoding": "br, gzip" });
    assert.deepEqual([plain.status, plain.headers.get("content-type"), plain.headers.get("content-encoding")], [200, "text/javascript; charset=utf-8", undefined]);
    assert.ok(plain.body.equals(written(name)));
    assert.deepEqual([packed.status, packed.headers.get("content-encoding")], [200, "gzip"]);
    assert.ok(gunzipSync(packed.body).equals(written(name)));
    t.diagnostic(`${packed.body.length} bytes`);
    assert.ok(packed.body.length < 6 * 1024, `${packed.body.length} bytes`);
    for (const { headers } of [plain, packed]) {
      assert.deepEqual([headers.get("cache-control"), headers.get("access-control-allow-origin"), headers.get("vary"), headers.get("x-content-type-options")],
        ["public, max-age=3600", "*", "accept-encoding", "nosniff"]);
      assert.equal(headers.get("etag"), plain.headers.get("etag"));
    }
    const refused = await ask(path, { "accept-encoding": "gzip;q=0" });
    assert.equal(refused.headers.get("content-encoding"), undefined);
  });

  test(`${path} is not sent again to a client that has it`, async () => {
    const { headers } = await ask(path), etag = headers.get("etag");
    assert.match(etag, /^W\/"[0-9a-f]{16}"$/);
    for (const known of [etag, `"other", ${etag}`, "*"]) {
      const { status, headers: again, body } = await ask(path, { "if-none-match": known });
      assert.deepEqual([status, again.get("etag"), again.get("cache-control"), body.length], [304, etag, "public, max-age=3600", 0]);
    }
    assert.equal((await ask(path, { "if-none-match": '"other"' })).status, 200);
  });
}

test("the two files have different tags", async () => {
  const tags = await Promise.all(Object.keys(files).map(async (path) => (await ask(path)).headers.get("etag")));
  assert.notEqual(tags[0], tags[1]);
});
