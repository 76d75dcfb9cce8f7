/// A caching gateway on SwiftNIO.
enum LarderGateway {}
