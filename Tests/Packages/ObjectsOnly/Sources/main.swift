import Larder
import LarderObjects

let store = try Store(at: "builds")
let server = try await ObjectServer.start(ObjectServerConfiguration(), store: store)
print("listens: \(server.address != nil)")
await server.stop()
try store.close()
