// socket_io.mjs - the server that fanout measures as "socket.io": each event "m" goes to everybody.
//
//   node bench/peers/socket_io.mjs PORT
//
// As its chapter on performance advises: WebSocket alone, no compression (which is the default), and
// the request that a connection began with is not kept. A broadcast is encoded once by its adapter.
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
