import Dispatch

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A client with a small receive buffer that reads exactly as much as a test says.
final class SlowClient {
    private var descriptor: CInt

    struct Failed: Error {
        let call: String
        let code: CInt
    }

    /// Connects to a port of 127.0.0.1.
    /// - Parameter other: whether the client has an address of its own, 127.0.0.2, which only Linux has without a
    ///   setting.
    init(port: Int, receiveBuffer: CInt = 4_096, isOther other: Bool = false) throws {
        #if canImport(Glibc)
            let kind = CInt(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw Failed(call: "socket", code: errno) }
        var size = receiveBuffer
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        if other {
            address.sin_addr.s_addr = UInt32(0x7F00_0002).bigEndian
            try Self.call("bind", bind, descriptor, &address)
        }
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        try Self.call("connect", connect, descriptor, &address)
    }

    private static func call(
        _ name: String, _ function: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt, _ descriptor: CInt,
        _ address: inout sockaddr_in
    ) throws {
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failed(call: name, code: errno) }
    }

    deinit { leave() }

    /// Closes the connection.
    func leave() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count else { throw Failed(call: "write", code: errno) }
    }

    /// Reads `count` bytes. Returns fewer at the end of the connection, a reset one included.
    func read(_ count: Int) async -> Int {
        let descriptor = descriptor
        // It blocks: not on a thread that the gateway's tasks need.
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: Self.read(descriptor, count)) }
        }
    }

    /// Reads all there is up to the end of the connection.
    func rest() async -> [UInt8] {
        let descriptor = descriptor
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var all: [UInt8] = []
                var bytes = [UInt8](repeating: 0, count: 64 << 10)
                while case let taken = recv(descriptor, &bytes, bytes.count, 0), taken > 0 { all += bytes[..<taken] }
                continuation.resume(returning: all)
            }
        }
    }

    private static func read(_ descriptor: CInt, _ count: Int) -> Int {
        var bytes = [UInt8](repeating: 0, count: min(count, 1 << 20))
        var done = 0
        while done < count {
            let taken = recv(descriptor, &bytes, min(bytes.count, count - done), 0)
            guard taken > 0 else { return done }
            done += taken
        }
        return done
    }
}
