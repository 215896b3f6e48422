/**
 * Whose share of the bounded resources something takes: that of an account which the upstream has accepted, or
 * `address …` for all credentials from an address that the upstream has not accepted yet.
 */
export type Owner = string;

const ADDRESS = 'address ';

/** Hashes of accounts hold no space. */
export const addressOwner = (address: string): Owner => `${ADDRESS}${address}`;

export const isAddress = (owner: Owner): boolean => owner.startsWith(ADDRESS);
