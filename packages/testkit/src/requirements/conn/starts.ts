import { AS_IS, type Requirement } from '../requirement.ts'

/** How servers start, and what is told of it. */
export const connStarts: readonly Requirement[] = [
  // Startup and lazy startup
  {
    id: 'conn.001',
    text: 'A host without the local environment fails its stdio server alone, by name and with the environment in the reason, and still tries its HTTP server',
    milestone: 2,
    origin: { kind: 'reworded', because: 'environments are an interface; the text is ours' },
  },
  {
    id: 'conn.002',
    text: 'A server whose cached catalog shows the model a tool is dormant after publication: not started, and absent from the startup summary',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 38: lazy-when-cached is the rule, also for the first publication' },
  },
  {
    id: 'conn.003',
    text: 'A server whose only cached tool is filtered out by the new configuration, or hidden from the model, is started at publication',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.004',
    text: 'A server of a selected plugin is started at publication although its catalog is cached',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.005',
    text: 'After a reconnect was asked for, the next refresh starts everything anew, also what could have stayed dormant',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.006',
    text: 'A call that waits wakes a dormant server, and its start is told as starting, then ready',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.007',
    text: 'A call that does not wait says that a dormant server is not connected, and leaves it dormant',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.008',
    text: 'A publication gate lets out what it held when the set is published, and drops it when the set is discarded',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 35: nothing waits on the gate, publishing opens it' },
  },
  {
    id: 'conn.009',
    text: 'A candidate that is never published has started nothing and said nothing',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 35: an abandoned candidate is closed un-woken' },
  },
  {
    id: 'conn.010',
    text: 'A server that does not introduce itself is shown under its configured name with an empty version',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.011',
    text: 'What a server says of itself wins over its configured name, and every field of it is kept',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.012',
    text: 'Without client extensions the handshake has no extensions field; with them they are sent as they were given, unknown fields included',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 42: the OpenAI forms are not built' },
  },
  {
    id: 'conn.013',
    text: 'The elicitation capability is an empty object for a host that answers forms only, and names form and url for one that answers both',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.014',
    text: 'A dormant connection that an empty set replaces was never started',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.015',
    text: 'A start under way survives a refresh without changes on the same connection, and when the server is removed its process ends',
    milestone: 2,
    origin: AS_IS,
  },
  // Events, errors, status
  {
    id: 'conn.016',
    text: 'A refused authorization is recognised through every layer of causes around it',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.017',
    text: 'A failure of the hosted GitHub endpoint without credentials says that it needs a personal access token and where to put it',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 45: messages are ours' },
  },
  {
    id: 'conn.018',
    text: 'A server that needs a sign-in says so with the command to run; in another environment it points to the sign-in of the client',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 45: messages are ours' },
  },
  {
    id: 'conn.019',
    text: 'A server whose stored sign-in is no longer accepted asks for a new sign-in, and not for a first one',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 45: messages are ours' },
  },
  {
    id: 'conn.020',
    text: 'The reason for a failure is a lapsed sign-in exactly when credentials were stored and the failure is a refused authorization',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.021',
    text: 'Any other failure of a start names the server and what went wrong',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 45: messages are ours' },
  },
  {
    id: 'conn.022',
    text: 'A start that takes too long names startupTimeoutMs and the configured limit',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 45: messages are ours' },
  },
  {
    id: 'conn.023',
    text: 'Names with dots, slashes, colons and spaces are quoted where a hint has to be pasted',
    milestone: 2,
    origin: { kind: 'reworded', because: 'the hints are shell commands, not TOML' },
  },
  {
    id: 'conn.024',
    text: 'Each state is reported within 100 ms without waking a dormant server, and a start that is cancelled says so',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.025',
    text: 'Servers that stay ready are listed first in the startup summary, and are told as ready once, just before it',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.026',
    text: 'While the credential store is contended a refused sign-in is not tried again by a refresh; it is told again and counted as failed',
    milestone: 2,
    origin: AS_IS,
  },
]
