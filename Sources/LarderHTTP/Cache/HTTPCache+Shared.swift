import Locks

extension HTTPCache {
    private static let current = Mutex<HTTPCache?>(nil)

    /// The cache that parts of a program share if they do not pass one to each other; nil until the program sets one.
    ///
    /// It is kept until it is replaced. Loads through the old one continue; ``drain()`` it before its store is closed.
    public static var shared: HTTPCache? {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }
}
