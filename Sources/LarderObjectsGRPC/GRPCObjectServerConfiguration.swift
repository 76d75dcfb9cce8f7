/// How a ``GRPCObjectServer`` listens, and its limits.
public struct GRPCObjectServerConfiguration: Sendable, Hashable {
    /// The address. Default: 127.0.0.1.
    public var host = "127.0.0.1"
    /// The port; 0 for a free one, which is the default.
    public var port = 0
    /// With a certificate the port speaks TLS only. Default: none.
    public var certificate: Certificate?
    /// Client connections at once; more are closed as they come. Default: 1,024.
    public var connections = 1_024
    /// Calls at once on a connection. Default: 128.
    public var callsPerConnection = 128
    /// Memory for messages of clients that are not worked on yet, and for answers that they do not read, in bytes.
    /// Calls beyond it fail with `resource-exhausted`. 8 MiB or more; default: 256 MiB.
    public var memoryBytes = 256 << 20
    /// How long a call may wait for the next bytes of its client, or for its client to read. Default: 60 s.
    public var stallTimeout = Duration.seconds(60)
    /// How long an upload that broke off can be continued. Its bytes so far stay in the store's staging area. Default:
    /// 5 minutes.
    public var resumeTimeout = Duration.seconds(300)
    /// Bytes of uploads that broke off, together; never more than a twentieth of the store's budget. Default: 1 GiB.
    public var resumableBytes: Int64 = 1 << 30
    /// How long a connection may be there without a call. Default: 10 s.
    public var firstCallTimeout = Duration.seconds(10)
    /// Uploads at once that broke off and can be continued; the oldest make room. Default: 256.
    public var resumableUploads = 256

    /// A certificate and its key, in PEM. They are read when the server starts.
    public struct Certificate: Sendable, Hashable {
        /// The path of a file with the certificate and those that it depends on, the server's first.
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
