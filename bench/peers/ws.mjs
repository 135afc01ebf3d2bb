// ws.mjs - the server that fanout measures as "ws": broadcasts each message.
//
//   node bench/peers/ws.mjs PORT
//
// Like the library's own example of a broadcast. Compression is off, the default; received bytes are
// sent unchanged, so they are encoded once.
import { WebSocket, WebSocketServer } from "ws";

const server = new WebSocketServer({
  host: "127.0.0.1",
  port: Number(process.argv[2]),
  perMessageDeflate: false,
  backlog: 4096,
});

server.on("connection", (client) => {
  client.on("error", console.error);
  client.on("message", (message, binary) => {
    for (const each of server.clients) {
      if (each.readyState === WebSocket.OPEN) each.send(message, { binary });
    }
  });
});
