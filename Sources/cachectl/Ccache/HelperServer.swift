import CachectlCore
import Larder
import NIOCore
import NIOPosix
import Locks

/// Serves ccache processes on a socket of their own, version 1 of their protocol.
struct HelperServer: Sendable {
    let store: Store
    private let activity = Activity()

    init(_ store: Store) { self.store = store }

    /// Serves until the task is cancelled, a client says so, or none came for a time.
    func run(_ settings: HelperSettings) async throws {
        // Only the user of this process may use the socket.
        let mask = umask(0o077)
        let socket: HelperSocket
        let server: NIOAsyncChannel<NIOAsyncChannel<ByteBuffer, ByteBuffer>, Never>
        do {
            defer { _ = umask(mask) }
            socket = try await HelperSocket(settings.endpoint)
            server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .bind(unixDomainSocketPath: settings.endpoint, cleanupExistingSocketFile: true) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
        } catch let error as CommandError {
            throw error
        } catch {
            throw CommandError(.temporary, "cannot listen on \(settings.endpoint): \(error)")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await accept(server) }
            group.addTask { try await activity.wait(idleFor: settings.idleTimeout) }
            // The first to end ends the others.
            _ = try await group.next()
            group.cancelAll()
        }
        withExtendedLifetime(socket) {}
    }

    private func accept(_ server: NIOAsyncChannel<NIOAsyncChannel<ByteBuffer, ByteBuffer>, Never>) async throws {
        try await server.executeThenClose { connections in
            try await withThrowingDiscardingTaskGroup { group in
                for try await connection in connections {
                    group.addTask { await serve(connection) }
                }
            }
        }
    }

    private func serve(_ connection: NIOAsyncChannel<ByteBuffer, ByteBuffer>) async {
        activity.begin()
        defer { activity.end() }
        // A client that is gone or does not keep to the protocol does not concern the others.
        _ = try? await connection.executeThenClose { input, output in
            var session = HelperSession(store: store, input: HelperInput(input.makeAsyncIterator()), output: output)
            if try await session.run() == .stop { activity.stop() }
        }
    }

    /// Notices when no client has been there for a time.
    private final class Activity: Sendable {
        private struct State {
            var clients = 0
            var last = ContinuousClock.now
            var isStopped = false
        }

        private let state = Mutex(State())

        func begin() { state.withLock { $0.clients += 1 } }

        func end() {
            state.withLock { state in
                state.clients -= 1
                state.last = .now
            }
        }

        func stop() { state.withLock { $0.isStopped = true } }

        func wait(idleFor timeout: Duration?) async throws {
            while true {
                try await Task.sleep(for: .milliseconds(50))
                let isOver = state.withLock { state in
                    state.isStopped || state.clients == 0 && timeout.map { .now - state.last >= $0 } ?? false
                }
                if isOver { return }
            }
        }
    }
}
