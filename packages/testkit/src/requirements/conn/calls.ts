import { AS_IS, type Requirement } from '../requirement.ts'

/** Bindings, calls, and how they end. */
export const connCalls: readonly Requirement[] = [
  // Bindings and the startup grace
  {
    id: 'conn.084',
    text: "A binding waits for pending optional servers until one grace has passed for all of them, a second one does not wait again; reading one server's resources waits, listing all does not",
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.085',
    text: 'A binding that requires a server by name, or the plugin that selected it, waits for it; an id of another plugin does not make it wait',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.086',
    text: 'A required server of a selected plugin is waited for beyond the grace',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.087',
    text: 'Without a grace a binding waits for the start, and the tool can then be called',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.088',
    text: 'A binding can be kept for reuse while an optional server has failed, and not while a required one has',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.089',
    text: 'The grace of a server is shared between sets; zero waits, another length begins anew, a published catalog ends it',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.090',
    text: 'A catalog that a peer publishes while a binding waits is used although the server is still pending',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.091',
    text: 'A cached catalog that expires while a binding waits for another server is kept, and its server stays dormant',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.092',
    text: 'A cached catalog that is disabled while a binding waits is left out',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.093',
    text: 'Cached tools of a hosted server are listed without their read-only hint and without a prepared call, and its own tools take their place once it is ready',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.094',
    text: 'While a hosted server reconnects, discovery shows its cached tools and a binding shows none; there is exactly one attempt',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.095',
    text: 'A binding is kept per generation: the same is given again while nothing changed, and never after a new publication',
    milestone: 2,
    origin: AS_IS,
  },
  // Calls
  {
    id: 'conn.096',
    text: 'A call that does not wait says within 50 ms that a pending server is not connected, and reaches one that is ready',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.097',
    text: 'A tool that the configuration denies cannot be called',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.098',
    text: "A call for another environment than the server's is refused without waiting, and one for the right environment says when the server is not connected",
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.099',
    text: "The smaller of the caller's and the server's time limit holds",
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.100',
    text: 'Entitlements that a caller puts into a call are removed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.101',
    text: 'A prepared call keeps its connection, environment, approval mode and policy after a refresh, and keeps the older set alive until it is disposed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.102',
    text: 'A tool hidden from models cannot be prepared for a model, and can be for the host itself',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.103',
    text: 'A tool that was listed from the cache runs only if the live one has the same execution contract',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.104',
    text: 'A prepared call whose connection has closed fails, and is not sent anywhere else',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.105',
    text: 'A prepared call is refused before anything else is done once a newer listing of its server has changed or withdrawn that tool; other changes do not concern it',
    milestone: 2,
    origin: {
      kind: 'reworded',
      because:
        'decision 7: listings follow notices here, and the view of a running step does not lose tools that stayed the same',
    },
  },
  // Cancelling, closing, reconnecting
  {
    id: 'conn.106',
    text: 'A ready connection can still be used after the cancelling of starts',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.107',
    text: 'Closing a host ends a listing that waits for a pending server within a second',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.108',
    text: 'Closing goes on to its end when the caller stops waiting for it',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.109',
    text: 'Two listings after a failed start of a hosted server make one reconnect, whose connection is used from then on',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.110',
    text: 'A server whose reconnects fail is not tried before 1 s, then not before 2 s; the third attempt succeeds and cached tools were there throughout',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.111',
    text: 'A failed ordinary server is started again, with a pause that grows, when somebody needs it',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 8: every optional server is reconnected' },
  },
  {
    id: 'conn.112',
    text: 'A session that the server has forgotten is made anew once for all callers that noticed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.113',
    text: 'A call does not time out while its server waits for a person',
    milestone: 2,
    origin: AS_IS,
  },
]
