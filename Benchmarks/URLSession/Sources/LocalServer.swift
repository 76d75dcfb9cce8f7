import Foundation

/// A server that answers every request with one body, over kept connections: a thread for each.
enum LocalServer {
    /// Starts it.
    ///
    /// - Returns: its port.
    static func start(_ bodies: [String: Int]) -> UInt16 {
        let listener = socket(AF_INET, streamType, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(isListening, "no server: \(errno)")
        let answers = bodies.mapValues { count in
            Array(
                ("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\nContent-Type: text/plain\r\n"
                    + "Cache-Control: max-age=3600\r\n\r\n").utf8) + [UInt8](repeating: 0x78, count: count)
        }
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0 { continue }
                var on: Int32 = 1
                setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
                Thread.detachNewThread { serve(connection, answers) }
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    private static var streamType: Int32 {
        #if canImport(Glibc)
            Int32(SOCK_STREAM.rawValue)
        #else
            Int32(SOCK_STREAM)
        #endif
    }

    private static func serve(_ connection: Int32, _ answers: [String: [UInt8]]) {
        defer { close(connection) }
        var request: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = read(connection, &buffer, buffer.count)
            if count <= 0 { return }
            request += buffer.prefix(count)
            guard request.suffix(4).elementsEqual([13, 10, 13, 10]) else { continue }
            let path = String(decoding: request, as: UTF8.self).split(separator: " ").dropFirst().first ?? ""
            request = []
            let answer = answers[String(path)] ?? Array("HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n".utf8)
            var sent = 0
            while sent < answer.count {
                let written = answer[sent...].withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
                if written <= 0 { return }
                sent += written
            }
        }
    }
}
