// Certificates for tests, and a TLS client in front of clients that do not support TLS.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";

/** Makes NAME.pem and NAME.key in the folder, self-signed; returns their paths, { certificate, key }. names:
 *  "DNS:localhost,IP:127.0.0.1". */
export function makeCertificate(folder, name, names = "DNS:localhost,IP:127.0.0.1") {
  const key = path.join(folder, `${name}.key`), certificate = path.join(folder, `${name}.pem`);
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", `/CN=${name}`,
    "-addext", `subjectAltName=${names}`, "-keyout", key, "-out", certificate], { stdio: "ignore" });
  return { certificate, key };
}

/** A certificate authority: { certificate, sign(name, names) }; sign() returns { certificate, key }, like makeCertificate(). */
export function makeAuthority(folder, name) {
  const authority = makeCertificate(folder, name);
  return { ...authority, sign(server, names) {
    const key = path.join(folder, `${server}.key`), certificate = path.join(folder, `${server}.pem`), request = path.join(folder, `${server}.csr`);
    const named = path.join(folder, `${server}.ext`);
    fs.writeFileSync(named, `subjectAltName=${names}\n`);
    execFileSync("openssl", ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", `/CN=${server}`,
      "-keyout", key, "-out", request], { stdio: "ignore" });
    execFileSync("openssl", ["x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority.key, "-CAcreateserial", "-days", "2",
      "-extfile", named, "-out", certificate], { stdio: "ignore" });
    return { certificate, key };
  } };
}

/** Listens without TLS, and passes each connection on through TLS to a port of 127.0.0.1: { port, close }. */
export async function unwrap(port, certificate) {
  const ca = fs.readFileSync(certificate), sockets = new Set();
  const server = net.createServer((plain) => {
    const wrapped = tls.connect({ port, host: "127.0.0.1", servername: "localhost", ca });
    for (const [one, other] of [[plain, wrapped], [wrapped, plain]]) {
      sockets.add(one);
      one.pipe(other);
      one.setNoDelay(true).on("error", () => other.destroy()).on("close", () => { sockets.delete(one); other.destroy(); });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: server.address().port, close: () => { server.close(); for (const socket of sockets) socket.destroy(); } };
}
