// A second organization with a project, its keys and its user, in the data of a gateway that does
// not run: the program makes only the first one.
import { execFileSync } from "node:child_process";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";

export const otherKeys = {
  ref: "proj_zyxwvutsrqponmlkjihg",
  dev: "tr_dev_ffffffffffffffffffffffff",
  prod: "tr_prod_gggggggggggggggggggggggg",
  pat: "tr_pat_hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
};

/** The text as src/vault/vault.c seals it: version, nonce, ciphertext, tag. */
function seal(key, context, text) {
  const nonce = crypto.randomBytes(12);
  const cipher = crypto.createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([Buffer.of(1), nonce, sealed, cipher.getAuthTag()]).toString("base64url");
}

const insert = `
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
(last,) = database.execute("SELECT seq FROM environment WHERE env = 0").fetchone()
for kind, name, body in json.load(sys.stdin):
    last += 1
    database.execute("INSERT INTO document (kind, env, name, version, seq, body) VALUES (?, 0, ?, 1, ?, ?)",
        (kind, name, last, json.dumps(body).encode()))
database.execute("UPDATE environment SET seq = ? WHERE env = 0", (last,))
database.commit()
`;

/** Writes them into the data of a stopped gateway. */
export function addSecondProject(data) {
  const key = Buffer.from(fs.readFileSync(path.join(data, "encryption.key"), "utf8").trim(), "hex");
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
  execFileSync("python3", ["-c", insert, path.join(data, "runcast.db")], { input: JSON.stringify(documents) });
}
