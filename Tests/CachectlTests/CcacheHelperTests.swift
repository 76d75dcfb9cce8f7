import Foundation
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// `ccache-helper`, by what ccache's specification of the protocol says.
struct CcacheHelperTests {
    /// The helper, started as ccache starts it.
    private final class Helper {
        let process: Process
        let socket: String

        /// - Parameter socket: where it listens; nil: at a path of its own.
        init(_ place: Workplace, _ environment: String..., url: String? = nil, socket given: String? = nil) async throws
        {
            let link = place.path.appending("ccache-storage-larder").string
            try? FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: CommandRun.binary.path)
            // A path of a socket has 107 bytes at most.
            socket = given ?? "/tmp/larder-helper-\(UUID().uuidString.prefix(8))"
            process = try CommandRun.start(
                [],
                prefix: [
                    "/usr/bin/env", "CRSH_IPC_ENDPOINT=\(socket)", "CRSH_URL=\(url ?? "larder://\(place.store)")",
                ] + environment + [link])
        }

        deinit {
            process.terminate()
            unlink(socket)
        }

        func connect() async throws -> Client {
            var client: Client?
            try await waitWhile {
                client = Client(socket)
                return client == nil && process.isRunning
            }
            guard let client else { throw POSIXError(.ECONNREFUSED) }
            return client
        }

        func end() async throws -> Int32 {
            await process.exit()
            return process.terminationStatus
        }
    }

    /// A ccache process.
    private final class Client {
        let descriptor: Int32

        init?(_ path: String) {
            #if canImport(Glibc)
                descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            #else
                descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
            #endif
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            guard result == 0 else { return nil }
        }

        deinit { close(descriptor) }

        func send(_ bytes: [UInt8]) { _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } }

        func receive(_ count: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: count)
            var done = 0
            while done < count {
                let read = bytes.withUnsafeMutableBytes {
                    Foundation.read(descriptor, $0.baseAddress! + done, count - done)
                }
                if read <= 0 { break }
                done += read
            }
            return Array(bytes.prefix(done))
        }

        static func number(_ value: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(value)) { Array($0) } }

        func put(_ key: [UInt8], _ value: [UInt8], overwrites: Bool = false) -> [UInt8] {
            send([1, UInt8(key.count)] + key + [overwrites ? 1 : 0] + Self.number(value.count) + value)
            return receive(1)
        }

        func get(_ key: [UInt8]) -> [UInt8]? {
            send([0, UInt8(key.count)] + key)
            guard receive(1) == [0] else { return nil }
            return receive(receive(8).withUnsafeBytes { Int($0.loadUnaligned(as: UInt64.self)) })
        }
    }

    @Test func getPutAndRemove() async throws {
        let place = try Workplace()
        let helper = try await Helper(place, "CRSH_NUM_ATTR=1", "CRSH_ATTR_KEY_0=budget", "CRSH_ATTR_VALUE_0=50MB")
        let (client, other) = (try await helper.connect(), try await helper.connect())
        #expect(client.receive(4) == [1, 2, 0, 1] && other.receive(4) == [1, 2, 0, 1])
        let key: [UInt8] = [0, 1, 0xAB]
        #expect(client.get(key) == nil)
        for length in [0, 1, 100_000, 3_000_000] {
            #expect(client.put(key, body(length, 1), overwrites: true) == [0])
            #expect(other.get(key) == body(length, 1))
        }
        #expect(client.put(key, [7]) == [1], "there is one, and it stays")
        #expect(client.get(key)?.count == 3_000_000)
        client.send([2, 3] + key)
        #expect(client.receive(1) == [0])
        client.send([2, 3] + key)
        #expect(client.receive(1) == [1])
        client.send([4])
        let length = Int(client.receive(1).first ?? 0)
        #expect(String(decoding: client.receive(length), as: UTF8.self).hasPrefix("larder") && client.receive(1) == [0])
        #expect(client.put([5], [1]) == [0])
        client.send([3])
        #expect(try await helper.end() == 0)
        #expect(try await place.run("get", "ccache/05").output == [1])
        #expect(try await place.run("budget", "--json").json["bytes"] as? Int == 50_000_000)
        #expect(!FileManager.default.fileExists(atPath: helper.socket))
    }

    /// A helper that was killed leaves its socket; the next one takes it over, and leaves that of a living one alone.
    @Test func aHelperFollowsOneThatWasKilled() async throws {
        let place = try Workplace()
        let first = try await Helper(place)
        let client = try await first.connect()
        #expect(client.receive(4).count == 4 && client.put([1], [7]) == [0])
        let second = try await Helper(place, socket: first.socket)
        #expect(try await second.end() == 75)
        #expect(client.get([1]) == [7])
        kill(first.process.processIdentifier, SIGKILL)
        _ = try await first.end()
        #expect(FileManager.default.fileExists(atPath: first.socket))
        for _ in 0..<2 {
            let next = try await Helper(place, socket: first.socket)
            let client = try await next.connect()
            #expect(client.receive(4).count == 4)
            client.send([3])
            #expect(try await next.end() == 0)
            #expect(!FileManager.default.fileExists(atPath: first.socket))
            #expect(!FileManager.default.fileExists(atPath: first.socket + ".lock"))
        }
        // A file that is not a socket stays.
        try Data([1]).write(to: URL(fileURLWithPath: first.socket))
        let last = try await Helper(place, socket: first.socket)
        #expect(try await last.end() == 75)
        #expect(FileManager.default.contents(atPath: first.socket) == Data([1]))
    }

    /// A client that does not keep to the protocol, or leaves, harms no other.
    @Test func badClients() async throws {
        let place = try Workplace()
        let helper = try await Helper(place)
        let unknown = try await helper.connect()
        unknown.send([99])
        #expect(unknown.receive(4 + 1).last == 2)
        let large = try await helper.connect()
        large.send([1, 1, 7, 0] + [UInt8](repeating: 0xFF, count: 8))
        #expect(large.receive(4 + 1).last == 2)
        var cut: Client? = try await helper.connect()
        cut?.send([1, 1, 8, 0] + Client.number(1_000) + body(500))
        cut = nil
        let client = try await helper.connect()
        #expect(client.receive(4) == [1, 2, 0, 1] && client.get([8]) == nil && client.put([8], [1]) == [0])
    }

    @Test func itEndsWithoutClients() async throws {
        let place = try Workplace()
        let helper = try await Helper(place, "CRSH_IDLE_TIMEOUT=1")
        #expect(try await helper.end() == 0)
    }

    @Test(arguments: ["larder:relative", "larder://host/path", "http://host/path", ""])
    func urlsThatNameNoStore(url: String) async throws {
        let place = try Workplace()
        let helper = try await Helper(place, url: url)
        #expect(try await helper.end() == 64)
    }

    @Test func withoutCcache() async throws {
        #expect(try await CommandRun.cachectl(["ccache-helper"]).status == 64)
    }
}
