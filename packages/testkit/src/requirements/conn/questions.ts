import { AS_IS, type Requirement } from '../requirement.ts'

/** What servers ask of a person, and who registered them. */
export const connQuestions: readonly Requirement[] = [
  // Elicitation
  {
    id: 'conn.114',
    text: 'Questions are declined when approvals are never given or do not cover servers, and otherwise not',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.115',
    text: 'With full access a form without fields is accepted, and one with fields is declined',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.116',
    text: 'Declining everything beats showing forms under full access',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.117',
    text: 'A question that carries a reserved key of the host loses it before anybody sees the question',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: a server can never set a reserved key' },
  },
  {
    id: 'conn.118',
    text: 'A form with fields under full access is shown to the person when the host says so, the reviewer is not asked, and the answer goes back',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.119',
    text: 'A form that asks for an approval is declined under full access',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.120',
    text: 'A host that shows forms under full access still declines when access is not full or approvals do not cover servers',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.121',
    text: 'A reviewer is asked once for a question that the policy leaves open',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the trust policy' },
  },
  {
    id: 'conn.122',
    text: 'Where nobody can be asked a question is not answered with a yes',
    milestone: 2,
    origin: {
      kind: 'replaced',
      because: 'decision 33: a host without a way to ask declares nothing, and parks what comes nevertheless',
    },
  },
  {
    id: 'conn.123',
    text: 'A thousand changes of the policy while questions come never let one through on a mixture of two policies',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.124',
    text: 'The same request id from two connections becomes two questions, each answer goes where it belongs, and none is left open',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.125',
    text: 'A question whose request was cancelled is gone at once, and others are not disturbed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.126',
    text: 'A question that cannot be shown fails at once and leaves nothing open',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.127',
    text: "A reviewer's no is final, a policy that declines is not reviewed, and nobody is asked after either",
    milestone: 2,
    origin: {
      kind: 'replaced',
      because: 'decision 33: the strict review marker is not built, a server cannot ask for a reviewer',
    },
  },
  {
    id: 'conn.128',
    text: 'A reviewer that declines or cancels is answered with exactly that',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.129',
    text: 'A reviewer that fails, takes too long or answers with something else is an error of the question, never a yes',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 33: the generic reviewer' },
  },
  {
    id: 'conn.130',
    text: 'The questions of a reused connection follow the newest policy of their server, also when it was disabled or removed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.131',
    text: 'The progress token is removed from a question and the rest of its context kept, a question without a mode is a form, and defaults of its schema stay',
    milestone: 2,
    origin: AS_IS,
  },
  // Registrations
  {
    id: 'conn.132',
    text: "An extension's registration beats all others, and a conflict names only rivals of the same tier",
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.133',
    text: 'A veto of a name disables the winner and nobody else',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.134',
    text: 'A disabled configuration entry or discovered plugin vetoes its name for what is laid over it; a disabled selected plugin does not',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.135',
    text: 'The earlier plugin wins, and the conflict is reported',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.136',
    text: 'A selected plugin beats a discovered one and loses to the configuration',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.137',
    text: 'At equal precedence the last action wins, and a removal can win',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.138',
    text: 'The root of a plugin is part of what makes two registrations the same',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.139',
    text: 'A restricted environment disables servers of extensions and plugins by its policy and leaves hosted ones alone',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 36: hosted is a trait, not a name' },
  },
  {
    id: 'conn.140',
    text: "The account's token goes only to hosted servers of the local environment and declared origins; elsewhere only a configured authorization is used, and no stored sign-in is looked at",
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 36: the account mode' },
  },
]
