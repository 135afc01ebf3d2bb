// A second organization with a project, its keys and its user. The program creates only the first one by itself, so this
// writes the second one into the data of a stopped gateway.
import crypto from "node:crypto";

import { queryStore, changeStore, encryptionKey, isSqlite } from "./gateway.mjs";

export const otherKeys = {
  ref: "proj_zyxwvutsrqponmlkjihg",
  dev: "tr_dev_ffffffffffffffffffffffff",
  prod: "tr_prod_gggggggggggggggggggggggg",
  pat: "tr_pat_hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
};

/** Seals the text as src/base/vault/vault.c does: version, nonce, ciphertext, tag. */
function seal(key, context, text) {
  const nonce = crypto.randomBytes(12);
  const cipher = crypto.createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([Buffer.of(1), nonce, sealed, cipher.getAuthTag()]).toString("base64url");
}

/** Writes the organization, project, user and keys into the data of a stopped gateway. */
export function addSecondProject(data) {
  const key = Buffer.from(encryptionKey(data), "hex"), hex = (text) => Buffer.from(text).toString("hex");
  const id = (what) => `${what}_${crypto.randomBytes(10).toString("hex")}z`;
  const [organization, project, user] = [id("org"), id("project"), id("user")];
  const hash = crypto.createHash("sha256").update(otherKeys.pat).digest("hex");
  const environments = ["dev", "prod"].flatMap((type, i) => {
    const environment = id("env"), name = `${environment}:root`;
    return [[3, environment, { number: 5 + i, id: environment, type, project }],
      [4, name, { environment, sealed: seal(key, name, otherKeys[type]) }]];
  });
  const documents = [
    [0, organization, { id: organization, name: "Other organization", slug: "other" }],
    [1, project, { id: project, ref: otherKeys.ref, name: "Other project", slug: "other", organization }],
    [2, user, { id: user, name: "Other", email: "other@example.com", organization }],
    ...environments, [5, hash, { hash, user }],
  ];
  const last = queryStore(data, "SELECT seq FROM environment WHERE env = 0")[0].seq;
  const rows = documents.map(([kind, name, body], i) =>
    `SELECT ${kind}, 0, $name(${hex(name)}), 1, ${last + 1 + i}, $blob(${hex(JSON.stringify(body))})${isSqlite ? "" : ", 0, 0"}`);
  changeStore(data, `INSERT INTO document (kind, env, name, version, seq, body${isSqlite ? "" : ", written_at, stale_at"}) ${rows.join(" UNION ALL ")};
    UPDATE environment SET seq = ${last + rows.length} WHERE env = 0`);
}
