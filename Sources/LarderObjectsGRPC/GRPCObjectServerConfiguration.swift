/// The address and the limits of a ``GRPCObjectServer``.
public struct GRPCObjectServerConfiguration: Sendable, Hashable {
    /// The address. Default: 127.0.0.1.
    public var host = "127.0.0.1"
    /// The port; 0 for a free one, which is the default.
    public var port = 0
    /// The certificate. With one, the port accepts only TLS. Default: none.
    public var certificate: Certificate?
    /// Simultaneous client connections; further ones are closed immediately. Default: 1,024.
    public var connections = 1_024
    /// Simultaneous calls on a connection. Default: 128.
    public var callsPerConnection = 128
    /// Memory for messages of clients that are waiting to be processed, and for answers that clients have not read, in
    /// bytes. Calls beyond it fail with `resource-exhausted`. 8 MiB or more; default: 256 MiB.
    public var memoryBytes = 256 << 20
    /// The time that a call may wait for the next bytes of its client, or for its client to read. Default: 60 s.
    public var stallTimeout = Duration.seconds(60)
    /// The time during which an interrupted upload can be continued. Its bytes so far stay in the store's staging area.
    /// Default: 5 minutes.
    public var resumeTimeout = Duration.seconds(300)
    /// The bytes of all interrupted uploads together; never more than a twentieth of the store's budget. Default: 1
    /// GiB.
    public var resumableBytes: Int64 = 1 << 30
    /// The time after which a connection is closed if it has not made its first call. Default: 10 s.
    public var firstCallTimeout = Duration.seconds(10)
    /// The number of interrupted uploads that can be continued; a new one replaces the oldest. Default: 256.
    public var resumableUploads = 256

    /// A certificate and its key, in PEM. They are read when the server starts.
    public struct Certificate: Sendable, Hashable {
        /// The path of a file with the certificate chain, the server's certificate first.
        public var certificateFile: String
        /// The path of a file with the private key.
        public var keyFile: String

        /// Names the files.
        public init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// The defaults.
    public init() {}
}
