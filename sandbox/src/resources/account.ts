import type { Instant } from '../time.ts';
import type { Dated } from './dated.ts';

export interface ApiKey extends Dated {
  id: number;
  key: string;
  label: string;
}

export interface Notification extends Dated {
  id: number;
  type: string;
  is_dismissable: boolean;
  context: Record<string, number>;
  dismissed_at: Instant | null;
}

export interface IdVerification extends Dated {
  id: number;
  state: 'requested' | 'pending' | 'failed' | 'verified';
  client_secret: string;
  verification_failure_times: number;
  max_verification_failure_times: number;
  verified_at: Instant | null;
}

interface EvidenceFile {
  id: number;
  created_at: Instant;
  file: string;
}

interface Evidence extends Dated {
  id: number;
  explanation: string;
  files: EvidenceFile[];
}

export interface VerificationFlow {
  id: number;
  type: string;
  state: string;
  started_at: Instant;
  updated_at: Instant;
  needs_evidence: boolean;
  evidence: Evidence;
  id_verification_restores_access: boolean;
  id_verification_required: boolean;
}
