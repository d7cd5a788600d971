import { AS_IS, type Requirement } from '../requirement.ts'

/** What a new configuration leaves running. */
export const connReuse: readonly Requirement[] = [
  // Reuse and reconciliation
  {
    id: 'conn.027',
    text: 'A ready server that nothing changed about keeps its connection over a refresh, and its tools stay listed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.028',
    text: 'A ready server is reused within a second although it does not answer listings any more: its known tools stay and nothing is asked',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.029',
    text: 'A change of the filter while a server starts neither blocks the refresh nor starts it again; the new filter holds once it is ready',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.030',
    text: 'Writing the default startup timeout out does not start a pending server again',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.031',
    text: 'A pending start that was adopted ends when its server is disabled and the older sets are gone',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.032',
    text: 'A server whose configured credentials were refused is tried again by a refresh',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.033',
    text: 'The client id and secret of a sign-in are part of the identity while the sign-in is used, the redirect never is, and no secret can be read from an identity',
    milestone: 2,
    origin: { kind: 'reworded', because: 'the secret is named by its variable' },
  },
  {
    id: 'conn.034',
    text: 'A change of the credential store matters to a connection only when no authorization of its own is configured',
    milestone: 2,
    origin: { kind: 'reworded', because: 'the store mode takes the place of keyring backend and refresh mode' },
  },
  {
    id: 'conn.035',
    text: 'Variables of a stdio server that only its own program understands do not keep it from being reused',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 24: the era of a launch is remembered, no marker variable exists' },
  },
  {
    id: 'conn.036',
    text: 'A stdio server that speaks the older era keeps its connection over a refresh of a host that speaks both',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 24: the era of a launch is remembered, no marker variable exists' },
  },
  {
    id: 'conn.037',
    text: 'A change of the HTTP transport mode replaces the connection',
    milestone: 2,
    origin: { kind: 'reworded', because: 'the choice is the transport field' },
  },
  {
    id: 'conn.038',
    text: 'A change from a sign-in to the account for a server in another environment replaces the connection; the start fails and no tool is left',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 36: the account mode' },
  },
  {
    id: 'conn.039',
    text: 'Three changes of the trust policy in a row keep the connection, and its questions obey each policy at once',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.040',
    text: 'A change of nothing but the startup timeout keeps a ready connection',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.041',
    text: 'A connection that its server has closed is replaced by a refresh',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.042',
    text: 'A change of the URL replaces the connection',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.043',
    text: 'The same plugin root keeps the connection, another one replaces it',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.044',
    text: 'A change of policy alone shares the connection: the older binding keeps its tools and approval modes, the new one has the new ones',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.045',
    text: 'A connection that may write is not reused once the policy is read-only',
    milestone: 2,
    origin: { kind: 'dropped', because: 'decision 33: permission profiles and sandboxes are not built' },
  },
  {
    id: 'conn.046',
    text: 'A live session that still holds credentials after they were deleted from the store is replaced',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.047',
    text: 'A ready connection is kept when the credential store cannot be read',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.048',
    text: 'A session that refreshed its own token is kept when the store holds that token',
    milestone: 2,
    origin: AS_IS,
  },
]
