// ws.mjs - the server that fanout measures as "ws": each message goes to everybody.
//
//   node bench/peers/ws.mjs PORT
//
// As the library's own example of a broadcast, and nothing beside it. Compression is off, as it
// is by default; the bytes that came are the bytes that are sent, so they are encoded once.
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
