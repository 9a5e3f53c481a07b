variable "region" {
  description = "Where the mailbox's bucket is to be; its client finds it by AWS_REGION."
  type        = string
  default     = "us-east-1"
}

variable "regions" {
  description = "Where machines may be rented; empty: in the bucket's region."
  type        = list(string)
  default     = []
}

variable "bucket" {
  description = "Name of the mailbox's bucket; empty: cloudwhale-ACCOUNT."
  type        = string
  default     = ""
}

variable "prefix" {
  description = "Folder of the mailbox in the bucket; another installation takes another."
  type        = string
  default     = "cloudwhale"
}

variable "users" {
  description = "IAM users who are to run cloudwhale; an administrator needs no policy."
  type        = list(string)
  default     = []
}

variable "make_spot_role" {
  description = "Whether EC2's role for spot is to be made: once in the life of an account."
  type        = bool
  default     = false
}

variable "reaper" {
  description = "Whether a function in the account also ends machines that have outlived their stop."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Further tags of what is made."
  type        = map(string)
  default     = {}
}
