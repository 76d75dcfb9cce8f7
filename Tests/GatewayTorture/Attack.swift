/// One of the attacks of the reviews.
struct Attack: Sendable {
    let name: String
    /// Settings of the gateway for it.
    var flags: [String] = []
    /// Opens the connections of the attack and keeps at it until its task is cancelled.
    let run: @Sendable (Target, Options) async throws -> [RawConnection]
}

/// Where the gateway listens.
struct Target: Sendable {
    var port: Int
    var tlsPort: Int
}

extension Attack {
    private static func open(
        _ count: Int, _ make: @escaping @Sendable (Int) async throws -> RawConnection
    ) async -> [RawConnection] {
        await withTaskGroup(of: RawConnection?.self) { group in
            for number in 0..<count {
                // A connection that is refused is an attack that failed.
                group.addTask { try? await make(number) }
            }
            return await group.reduce(into: []) { if let connection = $1 { $0.append(connection) } }
        }
    }

    private static func request(_ target: String, _ fields: String = "", method: String = "GET") -> String {
        "\(method) \(target) HTTP/1.1\r\nHost: example.org\r\n\(fields)\r\n"
    }

    /// Sends a piece on all connections, once in a while.
    private static func drip(_ connections: [RawConnection], _ piece: String, every pause: Duration) async {
        while !Task.isCancelled {
            for connection in connections where connection.isOpen { try? await connection.send(piece) }
            do { try await Task.sleep(for: pause) } catch { return }
        }
    }

    /// Streams that may never send a byte of their content.
    private static func windowsOfZero(name: String, _ path: String) -> Attack {
        Attack(name: name) { target, options in
            await open(options.scaled(20)) { _ in
                let connection = try await RawConnection.connect(target.tlsPort, protocols: ["h2"])
                try await connection.send(HTTP2Frames.preface(window: 0) + HTTP2Frames.settingsAcknowledged)
                for stream in 0..<100 {
                    try await connection.send(HTTP2Frames.get(path, stream: UInt32(stream * 2 + 1)))
                }
                return connection
            }
        }
    }

    static let all: [Attack] = [
        windowsOfZero(name: "HTTP/2, windows of 0, 1 MiB each", "/medium"),
        windowsOfZero(name: "HTTP/2, windows of 0, 60 KB each", "/small"),
        Attack(name: "HTTP/2, who stops reading the connection") { target, options in
            await open(options.scaled(20)) { _ in
                let connection = try await RawConnection.connect(target.tlsPort, protocols: ["h2"])
                try await connection.send(HTTP2Frames.preface(window: 1 << 30) + HTTP2Frames.settingsAcknowledged)
                try await Task.sleep(for: .milliseconds(50))
                try await connection.setReading(false)
                for stream in 0..<100 {
                    try await connection.send(HTTP2Frames.get("/medium", stream: UInt32(stream * 2 + 1)))
                }
                return connection
            }
        },
        Attack(name: "HTTP/2, streams opened and reset") { target, options in
            let connections = await open(options.scaled(10)) { _ in
                let connection = try await RawConnection.connect(target.tlsPort, protocols: ["h2"])
                try await connection.send(HTTP2Frames.preface(window: 65_535) + HTTP2Frames.settingsAcknowledged)
                return connection
            }
            var stream: UInt32 = 1
            while !Task.isCancelled, stream < 100_000 {
                for connection in connections where connection.isOpen {
                    try? await connection.send(
                        HTTP2Frames.get("/new/r\(stream)", stream: stream) + HTTP2Frames.reset(stream: stream))
                }
                stream += 2
            }
            return connections
        },
        Attack(name: "HTTP/1.1, who never reads a live body") { target, options in
            await open(options.scaled(300)) { number in
                let connection = try await RawConnection.connect(target.port)
                try await connection.send(request("/live/\(number)"))
                return connection
            }
        },
        Attack(name: "HTTP/1.1, who never reads a stored body") { target, options in
            await open(options.scaled(300)) { _ in
                let connection = try await RawConnection.connect(target.port)
                try await connection.send(request("/medium"))
                return connection
            }
        },
        Attack(name: "HTTP/1.1, requests in a row and no reading") { target, options in
            let many = String(repeating: request("/medium"), count: 200)
            return await open(options.scaled(100)) { _ in
                let connection = try await RawConnection.connect(target.port)
                Task { try? await connection.send(many) }
                return connection
            }
        },
        Attack(name: "heads that drip") { target, options in
            let connections = await open(options.scaled(500)) { _ in
                let connection = try await RawConnection.connect(target.port)
                try await connection.send("GET /small HTTP/1.1\r\nHost: ")
                return connection
            }
            await drip(connections, "a", every: .seconds(1))
            return connections
        },
        Attack(name: "uploads that drip", flags: RawConnection.flags) { target, options in
            let connections = await open(options.scaled(1_030)) { number in
                let connection = try await RawConnection.connect(target.port, isOtherClient: true)
                try await connection.send(request("/upload", "Content-Length: 1000000\r\n", method: "POST"))
                return connection
            }
            await drip(connections, String(repeating: "x", count: 300), every: .seconds(1))
            return connections
        },
        Attack(name: "requests that the origin never answers", flags: RawConnection.flags) { target, options in
            await open(options.scaled(1_030)) { number in
                let connection = try await RawConnection.connect(target.port, isOtherClient: true)
                try await connection.send(request("/hang/\(number)"))
                return connection
            }
        },
        Attack(name: "connections that say nothing") { target, options in
            await open(options.scaled(2_000)) { _ in try await RawConnection.connect(target.port) }
        },
        Attack(name: "small ranges of a large body") { target, options in
            await open(options.scaled(200)) { number in
                let connection = try await RawConnection.connect(target.port, reads: true)
                for turn in 0..<10 {
                    let start = (number * 10 + turn) * 10_000
                    try await connection.send(request("/big", "Range: bytes=\(start)-\(start + 9)\r\n"))
                }
                return connection
            }
        },
    ]
}
