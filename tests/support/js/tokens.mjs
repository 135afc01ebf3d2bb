// Public access tokens as the official SDKs sign them: with the secret key, on the client.
import crypto from "node:crypto";

const encode = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** Signs any header and any claims, valid or not. */
export function signJwt(key, claims, header = { alg: "HS256" }) {
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${crypto.createHmac("sha256", key).update(signed).digest("base64url")}`;
}

/** { key, scopes, expiresInS, skipColumns, …claims }: a token for the environment of the key. */
export async function publicToken(gateway, { key = gateway.keys.dev, scopes, expiresInS = 900, skipColumns, ...claims } = {}) {
  const { json } = await gateway.post("/api/v1/auth/jwt/claims", undefined, { key });
  const now = Math.floor(Date.now() / 1000);
  return signJwt(key, {
    ...json, iss: "https://id.trigger.dev", aud: "https://api.trigger.dev", iat: now, exp: now + expiresInS,
    scopes, ...(skipColumns && { realtime: { skipColumns } }), ...claims,
  });
}
