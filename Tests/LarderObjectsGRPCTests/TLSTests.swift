import GRPCCore
import GRPCNIOTransportHTTP2Posix
import Larder
import LarderObjects
import LarderObjectsGRPC
import SeededData
import TestOrigin
import TestSupport
import Testing

struct TLSTests {
    @Test func callsOverTLS() async throws {
        try await withDirectory { directory in
            let (certificate, key) = (directory.appending("certificate.pem"), directory.appending("key.pem"))
            try TestFiles.write(Array(OriginCertificate.local.certificatePEM.utf8), to: certificate)
            try TestFiles.write(Array(OriginCertificate.local.keyPEM.utf8), to: key)
            try await withStore { store in
                let objects = try await ObjectServer.start(ObjectServerConfiguration(), store: store)
                var configuration = GRPCObjectServerConfiguration()
                configuration.certificate = .init(certificateFile: certificate.string, keyFile: key.string)
                let calls = try await GRPCObjectServer.start(configuration, beside: objects)
                #expect(calls.url == "grpcs://127.0.0.1:\(calls.port)")
                let transport = try HTTP2ClientTransport.Posix(
                    target: .ipv4(address: "127.0.0.1", port: calls.port),
                    transportSecurity: .tls { tls in
                        tls.trustRoots = .certificates([.file(path: certificate.string, format: .pem)])
                        tls.serverCertificateVerification = .noHostnameVerification
                    })
                try await withGRPCClient(transport: transport) { client in
                    let setting = Setting(store: store, objects: objects, calls: calls, client: client)
                    try await setting.update([body(1_000)])
                    try await #expect(setting.missing(of: [named(body(1_000))]).isEmpty)
                }
                await calls.stop()
                await objects.stop()
            }
        }
    }
}
