import HTTPTestSupport
import LarderGateway
import LarderHTTP
import SystemPackage
import TestSupport
import Testing

/// Why a gateway does not start, and how that is said.
@Suite struct GatewayErrorTests {
    private static func failure(
        _ change: (inout GatewayConfiguration) -> Void
    ) async throws -> GatewayError? {
        try await withStore { store in
            var configuration = GatewayConfiguration()
            configuration.logger.logLevel = .critical
            configuration.routes.otherwise = try OriginServer("http://127.0.0.1:1")
            change(&configuration)
            do throws(GatewayError) {
                let gateway = try await Gateway.start(
                    configuration, cache: HTTPCache(store: store, transport: ScriptedTransport { _ in .bytes([]) }))
                await gateway.stop(drain: .zero)
                return nil
            } catch {
                return error
            }
        }
    }

    @Test func aConfigurationThatContradictsItselfHasNoCause() async throws {
        let error = try #require(
            try await Self.failure {
                $0.port = nil
                $0.tls = nil
            })
        #expect(error.code == .invalidArgument && error.cause == nil && error.path == nil && error.address == nil)
        #expect("\(error)" == "invalidArgument: the gateway has no port to listen on: set 'port' or 'tls'")
    }

    @Test func aPortInUseIsNamedWithItsCause() async throws {
        try await withGateway(transport: ScriptedTransport { _ in .bytes([]) }) { setting in
            let port = setting.port
            let error = try #require(try await Self.failure { $0.port = port })
            #expect(error.code == .cannotListen && error.address == "127.0.0.1:\(port)")
            #expect(error.cause as? Errno == .addressInUse)
            #expect(
                "\(error)"
                    == "cannotListen: cannot listen on 127.0.0.1 port \(port): \(Errno.addressInUse.description)")
        }
    }

    @Test func codesAreNamedAsTheyAreWritten() {
        #expect(
            GatewayError.Code.allCases.map(\.description) == ["invalidArgument", "cannotListen", "tls", "io"])
    }
}
