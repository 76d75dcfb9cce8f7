import Foundation
import Larder
import Recipes

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

enum Server {
    /// Sends the body under `key` to a socket; the kernel copies it, the process does not. False for a miss.
    static func send(_ key: Key, from store: Store, to socket: Int32) throws -> Bool {
        guard let entry = try store.get(key) else { return false }
        // The entry stays readable while it is sent, also if it is displaced or replaced meanwhile.
        try entry.body.withFileRange { file, range in
            var offset = off_t(range.lowerBound)
            while offset < range.upperBound {
                #if canImport(Darwin)
                    var count = off_t(range.upperBound) - offset
                    let result = sendfile(file.rawValue, socket, offset, &count, nil, 0)
                    offset += count
                    if result < 0 && errno != EINTR && errno != EAGAIN { throw LarderError(.io, "sendfile: \(errno)") }
                #else
                    let count = sendfile(socket, file.rawValue, &offset, Int(range.upperBound) - Int(offset))
                    if count < 0 && errno != EINTR { throw LarderError(.io, "sendfile: \(errno)") }
                #endif
            }
        }
        return true
    }
}

@main
enum SendFile {
    static func main() async throws {
        let store = try Store(at: "files")
        // One body lives in the index, the other in a file of its own: the server need not know.
        let bodies: [Key: [UInt8]] = ["small": Array("hello".utf8), "large": (0..<3_000_000).map { UInt8($0 % 251) }]
        for (key, body) in bodies { try await store.put(body, for: key) }

        for (key, body) in bodies {
            let (server, client) = try connect()
            async let received = readAll(FileHandle(fileDescriptor: client, closeOnDealloc: true))
            try expect(Server.send(key, from: store, to: server))
            close(server)
            let bytes = await received
            print("\(key): sent \(bytes.count) bytes")
            expect(Array(bytes) == body)
        }
        try expect(!Server.send("missing", from: store, to: -1))
        try await store.close()
    }

    /// Two connected sockets.
    static func connect() throws -> (Int32, Int32) {
        var sockets: [Int32] = [0, 0]
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        expect(socketpair(AF_UNIX, kind, 0, &sockets) == 0)
        return (sockets[0], sockets[1])
    }

    /// The client. It waits, so it needs a thread of its own.
    static func readAll(_ handle: FileHandle) async -> Data {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: (try? handle.readToEnd()) ?? Data()) }
        }
    }
}
