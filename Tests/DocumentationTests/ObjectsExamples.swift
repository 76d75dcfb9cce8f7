import Larder
import LarderObjects

// The Swift blocks of the articles of LarderObjects: see Examples.swift.

enum ObjectsExamples {
    static func serving(store: Store) async throws {
        var configuration = ObjectServerConfiguration()
        configuration.connections.port = 8080
        configuration.access = ObjectAccess(anonymous: .read)
        let server = try await ObjectServer.start(configuration, store: store)
        _ = server
    }
}
