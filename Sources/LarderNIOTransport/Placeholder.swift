/// A transport on SwiftNIO.
enum LarderNIOTransport {}
