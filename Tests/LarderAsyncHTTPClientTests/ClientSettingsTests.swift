import AsyncHTTPClient
import NIOCore
import NIOHTTPCompression
import Testing

@testable import LarderAsyncHTTPClient

/// What AsyncHTTPClient keeps to itself and a cache has to know: a version that names these things otherwise has to be
/// noticed here.
struct ClientSettingsTests {
    @Test func redirects() {
        var configuration = HTTPClient.Configuration()
        #expect(ClientSettings.redirects(configuration)?.max == 5)
        configuration.redirectConfiguration = .disallow
        #expect(ClientSettings.redirects(configuration) == nil)
        let wanted = ClientSettings.FollowConfiguration(
            max: 7, allowCycles: true, retainHTTPMethodAndBodyOn301: true, retainHTTPMethodAndBodyOn302: false)
        configuration.redirectConfiguration = .follow(configuration: wanted)
        #expect(ClientSettings.redirects(configuration) == wanted)
    }

    @Test func decompression() {
        var configuration = HTTPClient.Configuration()
        #expect(ClientSettings.decompression(configuration) == nil)
        let cases: [(NIOHTTPDecompression.DecompressionLimit, ClientSettings.GrowthLimit)] = [
            (.none, .none), (.size(5), .size(5)), (.ratio(6), .ratio(6)),
        ]
        for (limit, expected) in cases {
            configuration.decompression = .enabled(limit: limit)
            #expect(ClientSettings.decompression(configuration) == .some(expected))
        }
    }

    @Test func contentsThatCanBeSentTwice() {
        #expect(ClientSettings.isReplayable(nil))
        #expect(ClientSettings.isReplayable(.bytes(ByteBuffer(string: "a"))))
        #expect(ClientSettings.isReplayable(.bytes([1, 2, 3])))
        #expect(!ClientSettings.isReplayable(.stream([ByteBuffer(string: "a")].async, length: .unknown)))
    }
}
