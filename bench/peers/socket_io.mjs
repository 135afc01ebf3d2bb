// socket_io.mjs - the server that fanout measures as "socket.io": broadcasts each event "m".
//
//   node bench/peers/socket_io.mjs PORT
//
// Set up as Socket.IO's chapter on performance advises: WebSocket only, no compression (the default),
// and the first request of a connection is not kept. The adapter encodes a broadcast once.
import { createServer } from "node:http";
import { Server } from "socket.io";

const http = createServer();
const io = new Server(http, { transports: ["websocket"], perMessageDeflate: false, serveClient: false });

io.engine.on("connection", (connection) => {
  connection.request = null;
});

io.on("connection", (socket) => {
  socket.on("m", (message) => io.emit("m", message));
});

http.listen({ host: "127.0.0.1", port: Number(process.argv[2]), backlog: 4096 });
