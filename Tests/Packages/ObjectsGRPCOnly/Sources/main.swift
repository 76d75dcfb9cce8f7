import Larder
import LarderObjects
import LarderObjectsGRPC

let store = try Store(at: "builds")
let server = try await ObjectServer.start(ObjectServerConfiguration(), store: store)
let calls = try await GRPCObjectServer.start(GRPCObjectServerConfiguration(), beside: server)
print("listens: \(calls.port != 0)")
await calls.stop()
await server.stop()
try store.close()
