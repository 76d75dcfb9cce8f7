import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// One connection: a task that reads requests and answers them, one after the other.
struct OriginConnection: Sendable {
    let number: Int
    let recorder: Recorder
    let scripts: Scripts

    func start(_ stream: NIOAsyncChannel<ByteBuffer, Never>) {
        let task = Task(executorPreference: OriginExecutor(stream.channel.eventLoop)) {
            // The end of a connection is not a failure of the origin: tests see it as `connectionsOpen`.
            try? await stream.executeThenClose { inbound in
                try await run(stream.channel, RequestReader(inbound.makeAsyncIterator()))
            }
        }
        // Cancels an answer that waits at a gate if its client has left.
        stream.channel.closeFuture.whenComplete { _ in task.cancel() }
    }

    private func run(_ channel: any Channel, _ reader: consuming RequestReader) async throws {
        let writer = AnswerWriter(channel: channel)
        do {
            while var request = try await reader.head(connection: number) {
                recorder.began(&request)
                let entry = scripts.entry(for: request)
                if entry.answersOnHead {
                    let answer = try await entry.responder(request)
                    try await writer.write(answer, to: request)
                    if try await ends(channel, answer, request) { return }
                    try await reader.body(of: &request)
                    recorder.completed(request)
                } else {
                    if request["Expect"]?.lowercased() == "100-continue" {
                        try await writer.write(.raw("HTTP/1.1 100 Continue\r\n\r\n"), to: request)
                    }
                    try await reader.body(of: &request)
                    recorder.completed(request)
                    let answer = try await entry.responder(request)
                    try await writer.write(answer, to: request)
                    if try await ends(channel, answer, request) { return }
                }
            }
        } catch let malformed as RequestReader.Malformed {
            recorder.failed("connection \(number): \(malformed.message)")
            try await writer.write(.raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), to: .none(number))
        }
    }

    private func ends(_ channel: any Channel, _ answer: OriginAnswer, _ request: OriginRequest) async throws -> Bool {
        switch answer.ending {
        case .close:
            return true
        case .reset:
            // close(2) then discards what is unsent and sends RST: socket(7), SO_LINGER.
            if let socket = channel as? any SocketOptionProvider {
                try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
            }
            return true
        case .silence:
            try await Gate().wait()
            return true
        case .keepAlive:
            let options = request["Connection"]?.lowercased() ?? ""
            return options.contains("close") || (request.minorVersion == 0 && !options.contains("keep-alive"))
        }
    }
}

extension OriginRequest {
    /// A placeholder for bytes that were not a request.
    fileprivate static func none(_ connection: Int) -> OriginRequest {
        OriginRequest(
            method: "", target: "", minorVersion: 1, fields: [:], rawHead: [], connection: connection, order: 0,
            count: 0)
    }
}
