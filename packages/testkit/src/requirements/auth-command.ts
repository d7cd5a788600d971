import type { Requirement } from './requirement.ts'

const milestone = 3
const source = 'issue 4, Command'

export const authCommand: readonly Requirement[] = [
  {
    id: 'auth.200',
    text: 'the command keeps sign-ins below its state folder and their key apart from data and configuration, in the store that is named; another name is an error',
    milestone,
    source: '03 §5.5; issue 4, Credentials',
  },
  {
    id: 'auth.201',
    text: 'login opens the browser, shows the address on stderr all the same, and tells who signed in, what was granted, and where that is kept and why',
    milestone,
    source,
  },
  {
    id: 'auth.202',
    text: 'login takes what the browser ended at, pasted on a terminal or through a pipe, and says why it does not take a line',
    milestone,
    source,
  },
  {
    id: 'auth.203',
    text: 'login asks for the scopes that are named, for none when that is said, and says so when it asks again without',
    milestone,
    source,
  },
  {
    id: 'auth.204',
    text: 'login ends with an exit code of its own when nobody comes, when there is nothing to sign in to, when it is refused and when it is cancelled, and what was there stays',
    milestone,
    source,
  },
  {
    id: 'auth.205',
    text: 'login, logout and the status of sign-ins start no server',
    milestone,
    source,
  },
  {
    id: 'auth.206',
    text: 'logout deletes the sign-in, says whether the authorization server was told, and is no failure where there was none',
    milestone,
    source: 'RFC 7009; issue 4, Login',
  },
  {
    id: 'auth.207',
    text: 'the status of a sign-in says the truth while it lives: never made, good, over and renewable, renewed, missing scopes, signed out elsewhere',
    milestone,
    source: 'issue 4, Must be shown',
  },
  {
    id: 'auth.208',
    text: 'the status of a sign-in says the truth when it is of no use: refused, cut off in a renewal, in a store of another mode, damaged, a link, in a keyring that does not answer',
    milestone,
    source: 'issue 4, Must be shown',
  },
  {
    id: 'auth.209',
    text: 'what is said to be done about a sign-in is a command that a shell takes as it is, whatever the server is called',
    milestone,
    source,
  },
  {
    id: 'auth.210',
    text: 'the status of sign-ins asks a server or a keyring only when it is told to, and names servers that need no sign-in in one line',
    milestone,
    source: 'issue 4, Credentials',
  },
  {
    id: 'auth.211',
    text: 'a server that is added by its address is asked whether it wants a sign-in; it is offered on a terminal and named elsewhere, and nothing of that fails the adding',
    milestone,
    source,
  },
  {
    id: 'auth.212',
    text: 'a command that needs a server which wants a sign-in ends with exit code 5 and the command to run; for a missing scope it says which',
    milestone,
    source,
  },
  {
    id: 'auth.213',
    text: 'serving notices that somebody signed in or out with another program, says so, and has the tools or has them no longer, without a new start',
    milestone,
    source: 'lessons 05 §E',
  },
  {
    id: 'auth.214',
    text: 'a page is opened only at an https address or on this machine, with the program that the person names or that of the system, never by a shell, and it is said why it was not',
    milestone,
    source: '09-security.md A20',
  },
  {
    id: 'auth.215',
    text: 'no secret of a sign-in is in any output, in any file but the sealed records, or in the command line or the variables of any process',
    milestone,
    source: '09-security.md A53, A57',
  },
  {
    id: 'auth.216',
    text: 'the packed command keeps a sign-in in a real keyring, uses it in the next command, and forgets it',
    milestone,
    source: 'issue 4, Credentials',
  },
]
