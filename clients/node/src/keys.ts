/** The keys of one turn. All are compared byte for byte. */
export interface TurnKeys {
  /** The seat, 1 to 512 bytes. */
  readonly agentHandle: string;
  /** The conversation's identity, such as "jira:POC-7", 1 to 512 bytes. */
  readonly conversationKey: string;
  /** Names the run, 1 to 256 bytes. */
  readonly turnId: string;
  /** Digest of the turn's constituent trigger ids, at most 256 bytes (see `workKey`); empty: the turn is not recorded. */
  readonly workKey: string;
}

/** What `forget` erases, said outright: an empty key never widens it. */
export type Scope =
  | { readonly scope: "turn"; readonly agentHandle: string; readonly conversationKey: string; readonly workKey: string }
  | { readonly scope: "conversation"; readonly agentHandle: string; readonly conversationKey: string }
  | { readonly scope: "seat"; readonly agentHandle: string };
