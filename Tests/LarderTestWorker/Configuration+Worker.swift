import Foundation
import Larder

extension Configuration {
    /// The defaults, with a key where stores of tests are encrypted: see `isEncrypting` of `TestSupport`.
    static var ofWorker: Configuration {
        var configuration = Configuration()
        if ProcessInfo.processInfo.environment["LARDER_TEST_ENCRYPTION"] != nil {
            configuration.encryption = try? EncryptionKey(bytes: 0..<32)
        }
        return configuration
    }
}
