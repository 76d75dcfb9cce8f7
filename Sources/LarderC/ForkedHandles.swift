import Larder

/// What the C interface does in a child of fork(2): the handles of its parent are refused, and new ones are made.
enum ForkedHandles {
    /// Once, before the first store is opened.
    private static let result = Result<Void, LarderError> { () throws(LarderError) in
        Handles.rehearse()
        try Fork.watch { Handles.beginAgain() }
    }

    /// Throws `noSpace` if the system has no memory for a handler of pthread_atfork(3).
    static func watch() throws(LarderError) { try result.get() }

    static var inherited: LarderError {
        LarderError(
            .mustReopen,
            "the handle is of the process that this one was forked from, and the threads behind it stayed there: open the "
                + "store again")
    }
}
